-- One call of one node about one cell: takes in the node's totals, grants what it may, and says how things stand.
-- Its twin is `Record::take` in crates/core/src/lease/record.rs; random sequences hold the two against each other.
--
-- RUN (set by the loader in front of this text): the run id of the server process that this text was loaded into.
-- unfold.lua comes in front of it too.
-- KEYS  1 record of the cell (of a fixed window: one per window, made up to a minute before it begins)   2 epoch of the cell's tag
-- ARGV  1 fw|sw|tb|sl   2 boot, 11 characters   3 seq   4 win   5 need   6 quota   7 width in ms (fw: of the window `win`)
--       8 fingerprint to repeat   9 nodes   10 capacity (sl: what those cost who wait behind the first, each as much)
--       11 ask   12 bundled   13 plain   14 granted   15 used   16 returned   17 (sl) what of these a log has surely forgotten
--       Who has nothing to tell and asks for no more than it needs names its boot in 8 bytes and leaves out all from the 12th
--       on, an 11th that is the need, then a 10th of 0, and then a 9th of 1.
-- Reply fingerprint, now, stand (0 heard, 1 wrong window, 2 learning), win, plain, granted, used, returned,
--       took, lent, later, debt, three numbers of the algorithm, outstanding, made, recall
--       (fw, sw: counted, counted in the previous window, 0; tb: missing, fraction, moment; sl: live, oldest moment, its units,
--       and in place of `later` what was spent for those who wait behind the first)
--       or, where the call made the record and took just what it needed: fingerprint, now, 3, win
--
-- Record (a hash): w window, g counted, p counted in the previous window, o outstanding, r last recall;
-- m f a t a bucket's missing tokens, fraction, moment and rate, s the moment before which none of its boots was silent
-- for too long; l<moment> units of a log, in microseconds, and of one with many moments i, the index: all units, first and last
-- slice, boots, and x<slice> the moments of a slice, 7 bytes each: 64 slices make a width, and the name has the number's rest by
-- 4,096; <boot> what a boot did: seq, plain, took, window, moment (of the last
-- call; of fw and sw in ms of the window, 0 of the call that made the record; or of a log's last loan), granted, used, returned, lent, later (of a log: spent for those behind the first), debt, and of
-- the window before plain, granted, returned (cut after the fifth where nothing was ever lent or spent for those behind, after
-- the eleventh where there is nothing of the window before; of a log, the first of those three is what of the last loan still
-- stands under its moment).
-- Folded (a string, see unfold.lua), while one call made it and none came after.
-- All numbers are integers below 2^53; they become text by %.0f, or as arguments of a command, never by `..`.

local ALPHA, LEARN_MS, QUIET_MS, EPOCH_MS = 2, 1000, 500, 604800000
local AHEAD_MS, OLD_MOMENTS = 60000, 100000000000000
local SILENT_MS, RECALL_MS, LOG_STEPS, WIDTH_MAX, AMOUNT_MAX = 10060, 50, 1000, 316224000000, 9007199254740991
-- From so many moments on a log has an index, so that a call reads some of them and not all. Below it they lie together in one
-- piece of memory, and are read as fast. One that spans more slices than this was written by clocks that jumped: it is made anew.
local INDEX_MIN, SPAN_MAX = 64, 256
local call, record, kind, boot, print = redis.call, KEYS[1], ARGV[1], ARGV[2], ARGV[8]
local call_win, need, quota, width = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])

local time = redis.call('TIME')
local now_us = tonumber(time[1]) * 1000000 + tonumber(time[2])
local now = math.floor(now_us / 1000)

-- Of a fixed window that is yet to begin units are lent, soon before it does; nothing is spent, for that would be in the
-- window before.
local early = call_win - now
if kind == 'fw' and (now >= call_win + width or (early > 0 and (need > 0 or early > math.min(width, AHEAD_MS)))) then
  return { print, now, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
end

-- The epoch: history is whole only if this very process wrote it. One that learns for longer than any does was written
-- before the clock stepped back, and begins anew.
local learning = false
local epoch = call('GET', KEYS[2])
local learn_until = epoch and string.find(epoch, RUN, 1, true) == 1 and tonumber(string.sub(epoch, #RUN + 2))
if not learn_until or learn_until > now + LEARN_MS then
  learning, learn_until = true, now + LEARN_MS
  call('SET', KEYS[2], RUN .. string.format('|%.0f', learn_until), 'PX', EPOCH_MS)
elseif now < learn_until then
  learning = true
end

-- The window that it is. A caller may know a later one than a clock that stepped back; none may invent one.
local start = 0
if kind == 'fw' then
  start = call_win
elseif kind == 'sw' then
  start = now - now % width
  if call_win > start and call_win <= start + width then start = call_win end
end

-- The most frequent call of all: a new cell, one request, nothing to tell. What follows below would do the same, slower and
-- in twice the memory. Whether the cell is new is known only by trying. Not for windows that a time to
-- live which is a little late could not tell from the next, and not for logs whose moments are rounded.
if #boot == 8 and not learning and need > 0 and ARGV[3] ~= '0' and need <= quota
    and (kind ~= 'tb' or need <= tonumber(ARGV[10] or 0)) and (kind ~= 'sw' or width >= 1000)
    and (kind ~= 'sl' or quota <= LOG_STEPS) then
  local ends, folded = start + 2 * width, nil
  if need == 1 and #ARGV[3] < 10 then
    folded = boot .. struct.pack('>I4', ARGV[3])
  else
    folded = boot .. struct.pack('>I7I7', ARGV[3], need)
    if kind ~= 'tb' then folded = '+' .. folded end
  end
  if kind == 'tb' then
    folded = '+' .. folded .. struct.pack('>I6I7', now, quota)
    ends = now + math.min(math.ceil(tonumber(ARGV[10]) / quota * width), WIDTH_MAX) * 2 + SILENT_MS
  elseif kind == 'sl' then
    ends = now + 2 * width
  end
  if call('SET', record, folded, 'PXAT', ends, 'NX') then return { print, now, 3, start } end
end
if #boot == 8 then boot = boot_text(boot) end

-- Read the record.
local raw, log, boots
local old_names = {}
local w, mine, g, p, o, r, m, f, a, t, s
-- Of a log: units by moment as far as they are known, all units, and of one with an index its first and last slice.
local live, indexed, first_slice, last_slice
local slices, stale = {}, {}
if kind == 'sl' then
  local fields
  repeat
    fields = redis.pcall('HMGET', record, 'w', boot, 'o', 'r', 'i')
  until not (fields.err and unfold(record, kind, width))
  log, w, mine, o, r, indexed = {}, unpack(fields)
  if indexed then
    live, first_slice, last_slice, boots = string.match(indexed, '^(%d+),(%d+),(%d+),(%d+)$')
    live, first_slice, last_slice, boots = tonumber(live), tonumber(first_slice), tonumber(last_slice), tonumber(boots)
    -- One that cannot be read is made anew as well.
    indexed = boots and last_slice - first_slice <= SPAN_MAX
  end
  if not indexed then
    raw = w and call('HGETALL', record) or {}
    live, boots = 0, 0
    for i = 1, #raw, 2 do
      local name, value = raw[i], raw[i + 1]
      if #name > 11 then
        local moment = tonumber(string.sub(name, 2))
        -- As it was written before logs counted microseconds.
        if moment < OLD_MOMENTS then
          moment, old_names[#old_names + 1] = moment * 1000, name
        end
        log[moment] = (log[moment] or 0) + tonumber(value)
        live = live + tonumber(value)
      elseif #name == 11 then boots = boots + 1
      elseif string.sub(name, 1, 1) == 'x' or name == 'i' then stale[name] = true end
    end
  end
else
  local fields
  repeat
    fields = kind == 'tb' and redis.pcall('HMGET', record, 'w', boot, 'o', 'r', 'm', 'f', 'a', 't', 's')
      or redis.pcall('HMGET', record, 'w', boot, 'o', 'r', 'g', 'p')
  until not (fields.err and unfold(record, kind, width))
  if kind == 'tb' then
    w, mine, o, r, m, f, a, t, s = unpack(fields)
  else
    w, mine, o, r, g, p = unpack(fields)
  end
end
local made = not w

local seq, nodes = tonumber(ARGV[3]), math.max(1, tonumber(ARGV[9] or 1))
local capacity, ask = tonumber(ARGV[10] or 0), tonumber(ARGV[11] or ARGV[5])
local win, counted, previous = tonumber(w or 0), tonumber(g or 0), tonumber(p or 0)
local outstanding, recalled = tonumber(o or 0), tonumber(r or 0)
local old_win, old_previous, old_outstanding = win, previous, outstanding
local max, min = math.max, math.min

local function div(x, by) return (x - math.fmod(x, by)) / by end
local function div_up(x, by)
  local rest = math.fmod(x, by)
  return (x - rest) / by + (rest > 0 and 1 or 0)
end

-- floor(x * y / z) and what is left of it, for x < z < 2^39 and y < 2^53, without leaving 2^53.
local function muldiv(x, y, z)
  local quotient, left, rest = 0, 0, y
  -- 13 bits at a time, the highest first.
  for i = 4, 0, -1 do
    local digit = math.floor(rest / 8192 ^ i)
    rest = rest - digit * 8192 ^ i
    local part = left * 8192 + digit * x
    left = math.fmod(part, z)
    quotient = quotient * 8192 + (part - left) / z
  end
  return quotient, left
end

-- What a boot did: seq, plain, took, win, at, granted, used, returned, lent, later, debt; before: plain, granted, returned.
local function entry_of(value)
  local e1, e2, e3, e4, e5, more = string.match(value, '^(%d+),(%d+),(%d+),(%d+),(%d+)(.*)$')
  e1, e2, e3, e4, e5 = tonumber(e1), tonumber(e2), tonumber(e3), tonumber(e4), tonumber(e5)
  if more == '' then return e1, e2, e3, e4, e5, 0, 0, 0, 0, 0, 0, 0, 0, 0 end
  local e6, e7, e8, e9, e10, e11, rest = string.match(more, '^,(%d+),(%d+),(%d+),(%d+),(%d+),(%d+)(.*)$')
  local e12, e13, e14 = 0, 0, 0
  if rest ~= '' then e12, e13, e14 = string.match(rest, '^,(%d+),(%d+),(%d+)$') end
  return e1, e2, e3, e4, e5, tonumber(e6), tonumber(e7), tonumber(e8), tonumber(e9), tonumber(e10), tonumber(e11),
         tonumber(e12), tonumber(e13), tonumber(e14)
end
local function entry_text(e1, e2, e3, e4, e5, e6, e7, e8, e9, e10, e11, e12, e13, e14)
  local before = e12 > 0 or e13 > 0 or e14 > 0
  if e6 == 0 and e7 == 0 and e8 == 0 and e10 == 0 and not before then
    return string.format('%.0f,%.0f,%.0f,%.0f,%.0f', e1, e2, e3, e4, e5)
  end
  local text = string.format('%.0f,%.0f,%.0f,%.0f,%.0f,%.0f,%.0f,%.0f,%.0f,%.0f,%.0f', e1, e2, e3, e4, e5, e6, e7, e8, e9, e10, e11)
  return before and text .. string.format(',%.0f,%.0f,%.0f', e12, e13, e14) or text
end

local my_seq, my_plain, my_took, my_win, my_at, my_granted, my_used, my_returned, my_lent, my_later, my_debt =
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0
local old_plain, old_granted, old_returned, my_open = 0, 0, 0, 0
if mine then
  my_seq, my_plain, my_took, my_win, my_at, my_granted, my_used, my_returned, my_lent, my_later, my_debt,
    old_plain, old_granted, old_returned = entry_of(mine)
  -- A log has no window before. In its place is what of its last loan still stands under that moment.
  if kind == 'sl' then
    my_open, old_plain = old_plain, 0
    if my_at < OLD_MOMENTS then my_at = my_at * 1000 end
  end
end

local writes, deletes = {}, {}
local function write(name, value) writes[#writes + 1] = name; writes[#writes + 1] = value end

-- Time goes on.
local missing, fraction, at, silent, log_changed
if kind == 'fw' then
  win, my_win = start, start
elseif kind == 'sw' then
  if win > now - now % width + width then
    -- The clock was far ahead and came back: what was counted there counts here, and all that was lent as spent. What boots
    -- say of there is nothing of here, nor of there once it comes again. One window ahead a caller may know of.
    call('DEL', record)
    win, previous, outstanding, recalled, old_win, old_previous, old_outstanding = now - now % width, 0, 0, 0, 0, 0, 0
    my_seq, my_plain, my_took, my_win, my_at, my_granted, my_used, my_returned, my_lent, my_later, my_debt =
      0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0
  end
  if start > win then
    previous = start == win + width and counted or 0
    win, counted, outstanding = start, 0, 0
  end
elseif kind == 'tb' then
  missing, fraction, at = tonumber(m or 0), tonumber(f or 0), tonumber(a or 0)
  silent = outstanding > 0 and tonumber(s or 0) or math.huge
  if now >= silent then
    -- What silent boots hold counts as spent.
    silent = math.huge
    raw = call('HGETALL', record)
    for i = 1, #raw, 2 do
      if #raw[i] == 11 then
        local e1, e2, e3, e4, e5, e6, e7, e8, e9, e10, e11 = entry_of(raw[i + 1])
        local kept = e6 - e7 - e8
        if kept > 0 and now >= e5 + SILENT_MS then
          outstanding = max(0, outstanding - kept)
          if raw[i] == boot then my_used = my_used + kept
          else write(raw[i], entry_text(e1, e2, e3, e4, e5, e6, e7 + kept, e8, e9, e10, e11, 0, 0, 0)) end
        elseif kept > 0 then
          silent = min(silent, e5 + SILENT_MS)
        end
      end
    end
  end
  -- The clock was far ahead and came back: it fills from now on and not once that has caught up.
  if at > now + min(width, AHEAD_MS) then at = now end
  -- Who lowers the rate and raises it again gains nothing for the time between.
  local rate, elapsed = min(quota, tonumber(t or 0)), max(0, now - at)
  local whole = div(elapsed, width) * rate
  if whole > missing then
    missing, fraction = 0, 0
  else
    local gained, part = muldiv(math.fmod(elapsed, width), rate, width)
    missing, fraction = missing - whole - gained, fraction - part
    if fraction < 0 then missing, fraction = missing - 1, fraction + width end
    if missing < 0 then missing, fraction = 0, 0 end
  end
  at = max(at, now)
  -- What is lent is not in the bucket: it never holds more than the rest.
  if missing < outstanding then missing, fraction = outstanding, 0 end
else
  log_changed = {}
  for _, name in ipairs(old_names) do
    deletes[#deletes + 1] = name
    log_changed[tonumber(string.sub(name, 2)) * 1000] = true
  end
end

-- Units of a log under a moment.
local function log_at(moment)
  if not log[moment] then
    log[moment] = indexed and tonumber(call('HGET', record, string.format('l%.0f', moment)) or 0) or 0
  end
  return log[moment]
end

local function slice_of(moment) return math.floor(moment * 64 / (width * 1000)) end
local function slice_name(slice) return 'x' .. string.format('%.0f', slice % 4096) end

-- The moments of a slice, in no order.
local function slice_at(slice)
  if not slices[slice] then
    local moments, text = {}, call('HGET', record, slice_name(slice)) or ''
    for i = 1, #text, 7 do moments[#moments + 1] = struct.unpack('>I7', text, i) end
    slices[slice] = moments
  end
  return slices[slice]
end

local changed_slices = {}
local function set_log(moment, units)
  local before = log_at(moment)
  live = live + units - before
  log[moment], log_changed[moment] = units, true
  if not indexed or (before > 0) == (units > 0) then return end
  local slice = slice_of(moment)
  local moments = slice_at(slice)
  changed_slices[slice] = true
  if units > 0 then
    moments[#moments + 1] = moment
    -- The first of all begins anew.
    if live == units then first_slice, last_slice = slice, slice end
    first_slice, last_slice = min(first_slice, slice), max(last_slice, slice)
  else
    for i = #moments, 1, -1 do
      if moments[i] == moment then table.remove(moments, i) end
    end
  end
end

-- A log forgets. Of one with an index only what may be forgotten is looked at.
if kind == 'sl' then
  local ended = now_us - width * 1000
  while indexed and first_slice <= last_slice and first_slice <= slice_of(ended) do
    local moments = slice_at(first_slice)
    for i = #moments, 1, -1 do
      if moments[i] <= ended then set_log(moments[i], 0) end
    end
    if #moments > 0 then break end
    first_slice = first_slice + 1
  end
  for moment, units in pairs(indexed and {} or log) do
    if moment <= ended then
      live, log[moment], log_changed[moment] = live - units, 0, true
    end
  end
end

-- The moment under which units of a log are entered that were spent at `at`. One with more units is kept in a thousand steps of
-- its width, so that it never has more entries than that by much; rounded up. Not before the microsecond is over: what is spent
-- late in one and early in another that is a width later lies less than a width apart.
local function log_moment(at)
  local step = max(quota, live) > LOG_STEPS and width * 1000 / LOG_STEPS or 1
  return div_up(at + 1, step) * step
end

-- Counts units; for a log, says under which moment.
local function add(units, plain, at_us)
  if units == 0 then return end
  counted = counted + units
  if kind == 'tb' then
    missing = missing + units
  elseif kind == 'sl' then
    -- A lease is spent when nobody here can see it: at the latest when it lapses.
    local moment = log_moment(plain and at_us or at_us + div(width, 50) * 1000)
    set_log(moment, log_at(moment) + units)
    return moment
  end
end

-- No more than stands there; says how much that was.
local function take_from_log(moment, units)
  local gone = min(units, log_at(moment))
  if gone > 0 then set_log(moment, log_at(moment) - gone) end
  return gone
end

-- A log's last loan stands under the latest moment at which it could be spent. What the caller no longer holds of it is
-- taken out where it was given back, and was spent by now where it was not. The rest stays: what is given back of an older
-- loan, whose moment is not known any more, is never taken out of what can still be spent of this one.
local function settle(open, held, returned)
  local settled = max(0, open - held)
  local back = min(settled, returned)
  take_from_log(my_at, back)
  local by_now = log_moment(now_us)
  if by_now < my_at then
    local spent = take_from_log(my_at, settled - back)
    if spent > 0 then set_log(by_now, log_at(by_now) + spent) end
  end
  return open - settled
end

-- The caller's entry, as of the record's window. What it did in the one before is kept: who lost its history may hear of that
-- one last, and who did not must not count it twice.
if my_win ~= win then
  local next = kind == 'sw' and my_win + width == win
  old_plain, old_granted, old_returned = next and my_plain or 0, next and my_granted or 0, next and my_returned or 0
  my_win, my_plain, my_granted, my_used, my_returned = win, 0, 0, 0, 0
  -- What a call got in another window is void in this one, also for a repetition of it.
  my_took, my_lent, my_later, my_debt = 0, 0, 0, 0
end

-- What the caller says of itself, merged by max.
-- Totals of a window that is yet to come are nobody's: they must not replace those of this one.
-- While nodes tell what they know, only loans and first words are waited after: what they admit by their policy meanwhile
-- must not make the waiting longer.
local asserted = false
local told_plain, told_granted, told_returned = tonumber(ARGV[13] or 0), tonumber(ARGV[14] or 0), tonumber(ARGV[16] or 0)
if call_win == win then
  local plain, granted = max(my_plain, told_plain), max(my_granted, told_granted)
  local used, returned = max(my_used, tonumber(ARGV[15] or 0)), max(my_returned, told_returned)
  local taken = (plain - my_plain) + (granted - my_granted)
  asserted = taken > 0 and ((my_plain == 0 and my_granted == 0) or granted > my_granted)
  local before = missing
  -- Whoever is heard of for the first time may have spent most of it longer ago than a log remembers.
  local forgotten = kind == 'sl' and my_plain == 0 and my_granted == 0 and tonumber(ARGV[17] or 0) or 0
  add(max(0, taken - forgotten), false, now_us)
  local back = returned - my_returned
  -- What was written off as spent flows back by itself, and is not given back once more.
  if kind == 'tb' then back = min(back, max(0, granted - used - my_returned)) end
  counted = max(0, counted - back)
  if kind == 'sl' then
    my_open = settle(my_open, max(0, granted - (used + returned)), back)
  elseif kind == 'tb' then
    missing = max(0, missing - back)
    -- A bucket is never emptier than empty, what is lent ahead of its time, and one capacity: whatever was admitted
    -- without it, it is of use again in the time that it takes to fill. Who learns goes without that one: totals are of a
    -- boot's whole life, and what it spent long ago has flowed back.
    local ceiling = quota > 0 and capacity or 0
    local most = ceiling + min(div(quota, 20), div(capacity, 2)) + (learning and 0 or ceiling)
    missing = min(missing, max(most, before))
  end
  local held = max(0, granted - (used + returned)) - max(0, my_granted - (my_used + my_returned))
  outstanding = max(0, outstanding + held)
  -- What was written off and is given back all the same counts as granted, or as much of the next loan would be nobody's.
  if kind == 'tb' then granted = max(granted, min(used + returned, AMOUNT_MAX)) end
  my_plain, my_granted, my_used, my_returned = plain, granted, used, returned
elseif kind == 'sw' and call_win + width == win then
  local plain, granted, returned = max(old_plain, told_plain), max(old_granted, told_granted), max(old_returned, told_returned)
  local more = (plain + max(0, granted - returned)) - (old_plain + max(0, old_granted - old_returned))
  asserted = more > 0 and ((old_plain == 0 and old_granted == 0) or granted > old_granted)
  previous = max(0, previous + more)
  old_plain, old_granted, old_returned = plain, granted, returned
end
local new = seq > my_seq
if new then my_seq, my_took, my_lent, my_later, my_debt = seq, 0, 0, 0, 0 end
if learning and asserted and learn_until < now + QUIET_MS then
  call('SET', KEYS[2], RUN .. string.format('|%.0f', now + QUIET_MS), 'PX', EPOCH_MS)
end

-- What may still be spent of what is lent. Of a log that stands under later moments than what is spent now: a process that was
-- killed never says what became of the rest.
local function lent_still()
  if kind ~= 'sl' or outstanding == 0 then return outstanding end
  local units, by_now = 0, log_moment(now_us)
  -- Later than a width from now is only what was entered by a clock that jumped.
  local latest = by_now + width * 1000
  if indexed then
    for slice = max(first_slice, slice_of(by_now)), min(last_slice, slice_of(latest)) do
      for _, moment in ipairs(slice_at(slice)) do
        if moment > by_now and moment <= latest then units = units + log_at(moment) end
      end
    end
  else
    for moment, entered in pairs(log) do
      if moment > by_now and moment <= latest then units = units + entered end
    end
  end
  return min(outstanding, units)
end

-- What may be granted.
local recall = 0
if new and (need > 0 or ask > 0) and not learning then
  local ceiling, gone, soon = quota, counted, 0
  if kind == 'tb' then
    ceiling, gone = quota > 0 and capacity or 0, missing + (fraction > 0 and 1 or 0)
    soon = min(div(quota, 20), div(capacity, 2))
  elseif kind == 'sl' then
    gone = live
  elseif kind == 'sw' and previous > 0 then
    local elapsed = max(0, now - win)
    if elapsed < width then
      -- The previous window fades in 2^20 steps, rounded up; its product is split below 2^53.
      local keep = 1048576 - muldiv(elapsed, 1048576, width)
      local low = math.fmod(previous, 1048576)
      gone = gone + ((previous - low) / 1048576 * keep + div_up(low * keep, 1048576))
    end
    local half = div(max(0, win + width - now), 2)
    soon = div(previous, 20)
    if half < width then soon = min(soon, (muldiv(half, previous, width))) end
  end
  local free, debt = max(0, ceiling - gone), max(0, gone - ceiling)
  local fits = need <= free
  local taken = fits and need or 0
  -- Whatever a log lends counts from when the lease is over: those who wait are better served at once. Whole costs only, each
  -- as much as the first: a part of one would be spent for nobody.
  local more = kind == 'sl' and taken > 0 and div(min(capacity, free - taken), taken) * taken or 0
  -- Of what makes a log no more is kept than its millisecond, until somebody asks again.
  local at_us = made and now * 1000 + 999 or now_us
  local lend, later = 0, 0
  if ask > taken then
    local left = free - taken - more
    -- A need that does not fit gets nothing now: what is left is for those that do.
    local guided = fits and div_up(free, ALPHA * nodes) or 0
    lend = min(max(0, min(ask, guided) - taken), left)
    -- Nor later: who is lent what is to come waits for that, and does not ask for what is there.
    if not fits and free > 0 then soon = 0 end
    local share = soon >= 2 * nodes and div_up(soon, nodes) or 0
    local extra = max(0, min(ask, share) - (taken + lend))
    if fits then
      local at_once = min(extra, left - lend)
      lend, extra = lend + at_once, extra - at_once
    end
    later = min(extra, max(0, soon - debt))
  end
  local lent, plain = lend + later, more
  if ARGV[12] == '1' then
    lent = lent + taken
  else
    plain = plain + taken
  end
  add(plain, true, at_us)
  my_plain = my_plain + plain
  local entered = add(lent, false, at_us)
  if entered then my_at, my_open = entered, lent end
  outstanding = outstanding + lent
  if taken > 0 or lent > 0 then
    my_took, my_lent, my_later, my_debt = taken > 0 and 1 or 0, lent, kind == 'sl' and more or later, debt
    my_granted = my_granted + lent
  end
  -- Others hold what is missing here.
  if need > taken and later < need and lent_still() > max(0, my_granted - (my_used + my_returned))
      and math.abs(now - recalled) >= RECALL_MS
      and (kind == 'tb' or kind == 'sl' or win + width - now > RECALL_MS) then
    recall = 1
    write('r', now)
  end
end

-- More boots than any fleet has: those silent longest are forgotten, and what they held counts as spent. One that calls again
-- is counted again, so who holds nothing is not gone yet. Of logs it is not known: those go that hold least.
local most = 2 * nodes + 64
if not made and (boots or call('HLEN', record)) >= most then
  raw = raw or call('HGETALL', record)
  local others = {}
  for i = 1, #raw, 2 do
    if #raw[i] == 11 and raw[i] ~= boot then
      local _, _, _, e4, e5, e6, e7, e8 = entry_of(raw[i + 1])
      local over = (kind == 'sw' and e4 ~= win) or (kind == 'tb' and now >= e5 + SILENT_MS)
      local heard = kind == 'sl' and 0 or kind == 'sw' and e4 + e5 or e5
      others[#others + 1] = { raw[i], over and 0 or max(0, e6 - e7 - e8), heard }
    end
  end
  if #others >= most then
    -- In the order of the numbers that the names stand for: `-` is the highest digit. Strings are not compared, as that
    -- depends on the server's locale.
    local function before(x, y)
      if x[3] ~= y[3] then return x[3] < y[3] end
      if x[2] ~= y[2] then return x[2] < y[2] end
      for i = 1, 11 do
        local c, d = string.byte(x[1], i), string.byte(y[1], i)
        if c ~= d then return d == 45 or (c ~= 45 and c < d) end
      end
      return false
    end
    table.sort(others, before)
    for i = 1, #others + 1 - most do
      deletes[#deletes + 1] = others[i][1]
      outstanding = max(0, outstanding - others[i][2])
      if boots then boots = boots - 1 end
    end
  end
end

local still = lent_still()

-- Write what changed.
local x, y, z = counted, previous, 0
local life
if kind == 'tb' then
  my_at, x, y, z = now, missing, fraction, at
  write('m', missing); write('a', at)
  if made or fraction ~= tonumber(f) then write('f', fraction) end
  if made or quota ~= tonumber(t) then write('t', quota) end
  silent = min(silent, now + SILENT_MS)
  if outstanding > 0 and silent ~= tonumber(s or 0) then write('s', silent) end
  -- What is missing of a large bucket flows back no sooner because somebody asked for a small one.
  local before = tonumber(t or 0)
  local slowest = before > 0 and (quota > 0 and min(before, quota) or before) or max(1, quota)
  life = min(max(math.ceil(capacity / max(1, quota) * width), math.ceil(missing / slowest * width)), WIDTH_MAX) * 2 + SILENT_MS
elseif kind == 'sl' then
  local first
  if indexed then
    while live > 0 and first_slice < last_slice and #slice_at(first_slice) == 0 do first_slice = first_slice + 1 end
    for _, moment in ipairs(slice_at(first_slice)) do
      if not first or moment < first then first = moment end
    end
  else
    local many = 0
    for moment, units in pairs(log) do
      if units > 0 then
        many = many + 1
        if not first or moment < first then first = moment end
      end
    end
    if many >= INDEX_MIN then
      first_slice, last_slice, indexed = math.huge, 0, true
      for moment, units in pairs(log) do
        if units > 0 then
          local slice = slice_of(moment)
          slices[slice] = slices[slice] or {}
          slices[slice][#slices[slice] + 1], changed_slices[slice] = moment, true
          first_slice, last_slice = min(first_slice, slice), max(last_slice, slice)
        end
      end
      -- Clocks that jumped: not yet.
      if last_slice - first_slice > SPAN_MAX then indexed, changed_slices = false, {} end
    end
  end
  for moment in pairs(log_changed) do
    local name = string.format('l%.0f', moment)
    if log[moment] > 0 then write(name, log[moment]) else deletes[#deletes + 1] = name end
  end
  if indexed then
    write('i', string.format('%.0f,%.0f,%.0f,%.0f', live, first_slice, last_slice, boots + (mine and 0 or 1)))
    stale['i'] = nil
    for slice in pairs(changed_slices) do
      local name, moments = slice_name(slice), slices[slice]
      stale[name] = nil
      if #moments > 0 then
        for i, moment in ipairs(moments) do moments[i] = struct.pack('>I7', moment) end
        write(name, table.concat(moments))
      else
        deletes[#deletes + 1] = name
      end
    end
  end
  for name in pairs(stale) do deletes[#deletes + 1] = name end
  x, y, z = live, first or 0, first and log_at(first) or 0
  life = 2 * width
else
  my_at = made and 0 or max(0, now - win)
  write('g', counted)
  if previous ~= old_previous then write('p', previous) end
  life = max(1, win + 2 * width - now)
end
-- Who only looks, or is refused, leaves no trace.
if not made or my_plain > 0 or my_granted > 0 or my_used > 0 or my_returned > 0 or previous > 0 then
  if made or win ~= old_win then write('w', win) end
  if outstanding ~= old_outstanding then write('o', outstanding) end
  write(boot, entry_text(my_seq, my_plain, my_took, kind == 'fw' and 0 or my_win, my_at, my_granted, my_used, my_returned,
                         my_lent, my_later, my_debt, kind == 'sl' and my_open or old_plain, old_granted, old_returned))
  -- In pieces: Lua hands over some 8,000 values at most.
  for i = 1, #writes, 4000 do call('HSET', record, unpack(writes, i, min(#writes, i + 3999))) end
  for i = 1, #deletes, 4000 do call('HDEL', record, unpack(deletes, i, min(#deletes, i + 3999))) end
  call('PEXPIRE', record, life)
end
local same = seq == my_seq
return { print, now, learning and 2 or 0, win, my_plain, my_granted, my_used, my_returned,
         same and my_took or 0, same and my_lent or 0, same and my_later or 0, same and my_debt or 0,
         x, y, z, still, made and 1 or 0, recall }
