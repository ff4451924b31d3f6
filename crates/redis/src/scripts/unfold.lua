-- In front of take.lua and reset.lua. A record that one call made, and that nobody has asked for since, is one short string:
-- of a million identifiers most are never asked for again, and a hash takes twice the memory and another command.
-- The string: boot, window (of a bucket: moment) in hex, of whole seconds behind `;` and else of milliseconds behind `,`, units,
-- seq in hex, and a bucket's rate. Every character was spared: from the 29th on Redis takes 16 bytes more.
--
-- Makes it the hash that take.lua would have made. Returns true.

local function unfold(record)
  local life = redis.call('PTTL', record)
  local boot, moment, mark, units, seq, rate =
    string.match(redis.call('GET', record), '^(...........)(%x+)([,;])(%d+),(%x+),?(%d*)$')
  local since = string.format('%.0f', tonumber(moment, 16) * (mark == ';' and 1000 or 1))
  local done = string.format('%.0f', tonumber(seq, 16)) .. ',' .. units .. ',1,'
  redis.call('DEL', record)
  if rate == '' then
    redis.call('HSET', record, 'w', since, 'g', units, boot, done .. since .. ',0')
  else
    redis.call('HSET', record, 'w', '0', 'm', units, 'f', '0', 'a', since, 't', rate, boot, done .. '0,' .. since)
  end
  -- One that is to end within this millisecond must not lose its time to live.
  if life >= 0 then redis.call('PEXPIRE', record, math.max(1, life)) end
  return true
end

