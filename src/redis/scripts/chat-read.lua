#!lua flags=allow-oom
-- Reads a chat's events after a number, or says that the reader must start anew.
-- A: account, chat, after (-1: only the head), epoch (0: the present one), limit
-- Returns {'events', epoch, seq, {{seq, body} …}} | {'resync', epoch, seq}
local name = A.account .. ':' .. A.chat
local seq, boot, starts = touchChat(name)
if A.after < 0 then return { 'events', int(boot), int(seq), {} } end
local mustResync = A.after > seq or A.epoch > boot
local oldest = nil
for epoch, began in string.gmatch(starts, '(%d+):(%d+)') do
  oldest = oldest or tonumber(epoch)
  if A.epoch > 0 and tonumber(epoch) > A.epoch and A.after > tonumber(began) then mustResync = true end
end
if A.epoch > 0 and oldest and A.epoch < oldest and A.after > 0 and select(2, string.gsub(starts, ':', '')) >= 16 then mustResync = true end
if mustResync then return { 'resync', int(boot), int(seq) } end
if A.after == seq then return { 'events', int(boot), int(seq), {} } end
local out = {}
for i, row in ipairs(redis.call('XRANGE', key('events', name), int(A.after + 1) .. '-0', '+', 'COUNT', A.limit)) do
  out[i] = { string.match(row[1], '^(%d+)'), row[2][2] }
end
if not out[1] or tonumber(out[1][1]) ~= A.after + 1 then return { 'resync', int(boot), int(seq) } end
return { 'events', int(boot), int(seq), out }
