-- Who is the first in a while? Makes marks that are not there, each for so long.
--
-- KEYS  one mark for each thing
-- ARGV  1 seconds a mark lasts
-- Reply the places, from 1, of those that had no mark

local first = {}
for at = 1, #KEYS do
  if redis.call('SET', KEYS[at], '1', 'NX', 'EX', ARGV[1]) then first[#first + 1] = at end
end
return first
