-- Forgives what was spent of one cell: what counts is what is lent and not known to be spent. Boots and TTL stay as they are.
-- Its twin is `Record::reset` in crates/core/src/lease/record.rs.
--
-- unfold.lua comes in front of this text.
-- KEYS  1 record of the cell
-- Reply 1 where there was a record, else 0

-- The name says how wide the window is and what counts it.
local record = KEYS[1]
local width, kind = string.match(record, '/(%d+):[^:]*:(%l%l)$')
local all
repeat
  all = redis.pcall('HGETALL', record)
until not (all.err and unfold(record, kind or 'fw', tonumber(width or 0)))
if #all == 0 then return 0 end
local has, newest, gone = {}, nil, {}
for i = 1, #all, 2 do
  local name = all[i]
  has[name] = all[i + 1]
  -- A boot has eleven characters; the moment of a log has more.
  if #name > 11 then
    local moment = tonumber(string.sub(name, 2))
    if not newest or moment > newest then newest = moment end
    gone[#gone + 1] = name
  elseif #name < 11 and (name == 'i' or string.sub(name, 1, 1) == 'x') then
    -- The index of a log goes with it.
    gone[#gone + 1] = name
  end
end
local outstanding = has['o'] or '0'
if has['g'] then redis.call('HSET', record, 'g', outstanding) end
if has['p'] then redis.call('HSET', record, 'p', '0') end
if has['m'] then redis.call('HSET', record, 'm', outstanding, 'f', '0') end
-- In pieces: Lua hands over some 8,000 values at most.
for i = 1, #gone, 4000 do redis.call('HDEL', record, unpack(gone, i, math.min(#gone, i + 3999))) end
if newest and outstanding ~= '0' then
  redis.call('HSET', record, 'l' .. string.format('%.0f', newest), outstanding)
end
return 1
