-- Keeps the totals of processes in the bucket of a minute: of two about the same thing the larger one. Told twice, late or
-- out of order, it changes nothing.
--
-- KEYS  1 bucket: a hash of totals
-- ARGV  1 ms it is kept for   2, 3 … field and total, in turn
-- Reply how many grew

local grown = 0
for at = 2, #ARGV, 2 do
  local held = redis.call('HGET', KEYS[1], ARGV[at])
  if (held and tonumber(held) or -1) < tonumber(ARGV[at + 1]) then
    redis.call('HSET', KEYS[1], ARGV[at], ARGV[at + 1])
    grown = grown + 1
  end
end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return grown
