-- Keeps an entry of the shared cache, unless one is there that was read later. So a slow load never takes the place of a
-- newer one, nor of the notice that something changed.
--
-- KEYS  1 entry: sixteen digits that say at which revision it was read, then what is sealed (nothing: a notice)
-- ARGV  1 the entry   2 revision from which on an entry that is there stays   3 ms it is kept for
-- Reply 1 where it was kept, else 0

local held = redis.call('GET', KEYS[1])
local revision = held and tonumber(string.sub(held, 1, 16))
if revision and revision >= tonumber(ARGV[2]) then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[3])
return 1
