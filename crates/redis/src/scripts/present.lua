-- Which of these keys are there.
--
-- KEYS  any number
-- Reply their places, from 1

local there = {}
for at = 1, #KEYS do
  if redis.call('EXISTS', KEYS[at]) == 1 then there[#there + 1] = at end
end
return there
