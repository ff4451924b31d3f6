-- Publishes a message with its number, so that whoever hears the next one, or reads the count, knows whether one is missing.
--
-- KEYS  1 count of the channel: the number of its last message
-- ARGV  1 channel   2 message   3 where to begin if there is no count   4 ms that a count is kept for
-- Reply how many heard it

local number = (tonumber(redis.call('GET', KEYS[1])) or tonumber(ARGV[3])) + 1
local text = string.format('%.0f', number)
local kept = redis.pcall('SET', KEYS[1], text, 'PX', ARGV[4])
-- A server without memory left refuses to count; it is heard without a number then, and nobody misses one.
if kept.err then return redis.call('PUBLISH', ARGV[1], ARGV[2]) end
return redis.call('PUBLISH', ARGV[1], text .. '\n' .. ARGV[2])
