-- Takes totals out of a bucket that the ledger in the database shows, unless they have grown since they were read.
--
-- KEYS  1 bucket
-- ARGV  1, 2 … field and the total that was read, in turn
-- Reply how many were taken out

local taken = 0
for at = 1, #ARGV, 2 do
  if redis.call('HGET', KEYS[1], ARGV[at]) == ARGV[at + 1] then
    taken = taken + redis.call('HDEL', KEYS[1], ARGV[at])
  end
end
return taken
