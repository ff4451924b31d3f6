-- Gives a lock back, if it is still the one that was taken.
--
-- KEYS  1 lock
-- ARGV  1 what was written when it was taken
-- Reply 1 where it was given back, else 0

if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0
