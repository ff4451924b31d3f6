-- The heartbeat of one node: says that it lives, forgets those that were silent, counts the rest. A hint for the size of
-- leases; exactness never depends on it.
--
-- KEYS  1 members: a sorted set of boots by the ms they were last heard
-- ARGV  1 boot   2 ms after which one that was silent is no member   3 'leave' to go at once, or ''
-- Reply how many members there are

local MEMBERS_MS = 60000
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(time[2] / 1000)
local members, boot = KEYS[1], ARGV[1]
if ARGV[3] == 'leave' then
  redis.call('ZREM', members, boot)
else
  redis.call('ZADD', members, now, boot)
end
redis.call('ZREMRANGEBYSCORE', members, '-inf', string.format('(%.0f', now - tonumber(ARGV[2])))
redis.call('PEXPIRE', members, MEMBERS_MS)
return redis.call('ZCARD', members)
