#!lua flags=allow-oom
-- Prolongs all leases of a process and says that it lives.
-- A: owner, isWorker, leaseMs, held [{s, fence}]
-- Returns {sessions no longer owned}
local untilMs, lost = int(nowMs + A.leaseMs), {}
for _, held in ipairs(A.held) do
  if holds(held.s, held.fence) == 'held' then
    redis.call('ZADD', key('lease'), untilMs, held.s)
    redis.call('ZADD', key('turns'), 'XX', untilMs, held.s)
  else
    lost[#lost + 1] = held.s
  end
end
redis.call('ZADD', key('owners'), untilMs, A.owner)
if A.isWorker then redis.call('ZADD', key('workers'), untilMs, A.owner) end
return { lost }
