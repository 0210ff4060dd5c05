#!lua flags=allow-oom
-- Gives a session up with its mail: fairness, shutdown, or a failed turn (the last try moves the message to the dead
-- letters and tells its sender).
-- A: session, fence, why, delayMs, file, reason, maxTries, giveUpNotice, leaseMs
-- Returns {'lost'} | {'ok', wakes, '1' when given up}
local s = A.session
local held = holds(s, A.fence)
if held == 'lost' then return { 'lost' } end
if held == 'left' then return { 'ok', formerWakes(s), '0' } end
setFile(s, A.file)
local gaveUp = A.why == 'fail' and countTry(s, A.reason)
giveBack(s, gaveUp and 0 or A.delayMs)
return { 'ok', wakes, gaveUp and '1' or '0' }
