-- The epoch of one tag: which life of which server process wrote its records. Where it was another, history may be lost:
-- nothing is granted until every node has had the time to say what it holds. `take.lua` keeps the same rule.
--
-- RUN (set by the loader in front of this text): the run id of the server process that this text was loaded into.
-- KEYS  1 epoch of the tag: run id | ms until which it learns
-- ARGV  1 (or none) the ms at which the caller last heard another process in the place of this one
-- Reply now, the ms until which it learns (past, where it does not)

local LEARN_MS, EPOCH_MS = 1000, 604800000
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(time[2] / 1000)
local epoch = redis.call('GET', KEYS[1]) or ''
local run, til = string.match(epoch, '^(%w+)|(%d+)$')
-- One that learns for longer than any does was written before the clock stepped back, and begins anew. So does one that no
-- longer learnt a whole time after another was heard: what that one counted last may never have been told. What counts is when
-- it ends and not when it began: as long as it goes on nothing is granted. A second caller finds it begun, and changes nothing.
if run == RUN and tonumber(til) <= now + LEARN_MS and (not ARGV[1] or tonumber(til) > tonumber(ARGV[1]) + LEARN_MS) then
  -- Written and not only prolonged: a server without memory left must refuse this as it refuses a take.
  redis.call('SET', KEYS[1], epoch, 'PX', EPOCH_MS)
  return { now, tonumber(til) }
end
local learn_until = now + LEARN_MS
redis.call('SET', KEYS[1], RUN .. '|' .. string.format('%.0f', learn_until), 'PX', EPOCH_MS)
return { now, learn_until }
