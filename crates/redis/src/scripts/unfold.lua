-- In front of take.lua and reset.lua. A record that one call made, and that nobody has asked for since, is one short string:
-- of a million identifiers most are never asked for again, and a hash takes twice the memory and another command.
-- The string: boot in 8 bytes and seq in 4, where one unit was taken; else `+`, boot, seq in 7 and units in 7. Of a bucket `+`,
-- boot, seq in 4 or seq in 7 and units in 7, the moment in 6 and the rate in 7. All else has its moment in its time to live.
-- Every byte was spared: from the 13th on, and again from the 29th, Redis takes 16 bytes more.

-- The eleven characters by which a boot is known in records, of its 8 bytes.
local function boot_text(bytes)
  local digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz-'
  local text = ''
  local parts = { struct.unpack('>I2I3I3', bytes) }
  for i = 3, 1, -1 do
    for _ = 1, i == 1 and 3 or 4 do
      local digit = parts[i] % 64
      text = string.sub(digits, digit + 1, digit + 1) .. text
      parts[i] = (parts[i] - digit) / 64
    end
  end
  return text
end

-- Makes it the hash that take.lua would have made. What is not as this version writes it counts as not there. Returns true.
local function unfold(record, kind, width)
  local life, ends = redis.call('PTTL', record), redis.call('PEXPIRETIME', record)
  local folded = redis.call('GET', record)
  redis.call('DEL', record)
  local length, from = #folded, 1
  if kind == 'tb' or length ~= 12 then
    if string.sub(folded, 1, 1) ~= '+' then return true end
    length, from = length - 1, 2
  end
  local long = length == (kind == 'tb' and 35 or 22)
  if ends < 0 or not (long or length == (kind == 'tb' and 25 or 12)) then return true end
  local seq, units, rest = struct.unpack(long and '>I7I7' or '>I4', folded, from + 8)
  if not long then units, rest = 1, units end
  local boot = boot_text(string.sub(folded, from))
  local fields
  if kind == 'tb' then
    local since, rate = struct.unpack('>I6I7', folded, rest)
    fields = { 'w', 0, 'm', units, 'f', 0, 'a', since, 't', rate, boot, string.format('%.0f,%.0f,1,0,%.0f', seq, units, since) }
  elseif kind == 'sl' then
    fields = { 'w', 0, string.format('l%.0f', (ends - 2 * width + 1) * 1000), units, boot, string.format('%.0f,%.0f,1,0,0', seq, units) }
  else
    -- A record that moved to another server arrives with a time to live that is late by the time that took.
    local middle = ends - 2 * width + math.floor(width / 2)
    local since = kind == 'fw' and 0 or middle - middle % width
    fields = { 'w', since, 'g', units, boot, string.format('%.0f,%.0f,1,%.0f,0', seq, units, since) }
  end
  redis.call('HSET', record, unpack(fields))
  -- One that is to end within this millisecond must not lose its time to live.
  if life >= 0 then redis.call('PEXPIRE', record, math.max(1, life)) end
  return true
end

