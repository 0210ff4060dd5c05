#!lua flags=allow-oom
-- Takes sessions from holders that are gone: the fence first, then a new wake number. Parked ones whose time came, and
-- slots nobody used, too.
-- A: dead (owners known to be dead), leaseMs, maxTries, giveUpNotice, maxTurns
-- Returns {wakes, sessions taken}
local dead, taken = {}, {}
for _, owner in ipairs(A.dead) do
  dead[owner] = true
  redis.call('ZREM', key('owners'), owner)
  redis.call('ZREM', key('workers'), owner)
end
redis.call('ZREMRANGEBYSCORE', key('owners'), '-inf', int(nowMs - 3600000))
redis.call('ZREMRANGEBYSCORE', key('workers'), '-inf', int(nowMs))
-- A server that was away could renew nothing: leases that ended meanwhile count no try. One that stood still has the same
-- boot number, but nobody reaped meanwhile.
local boot = bootNumber()
local seen = redis.call('HMGET', KEYS[1], 'reaped', 'away')
local isGap = nowMs - (tonumber(seen[1]) or nowMs) > A.leaseMs / 2
local away = isGap and nowMs or tonumber(seen[2]) or 0
redis.call('HSET', KEYS[1], 'reaped', int(nowMs), 'away', int(away))
local wasAway = nowMs - math.max(boot, away) < 2 * A.leaseMs
local leases = redis.call('ZRANGE', key('lease'), 0, -1, 'WITHSCORES')
for i = 1, #leases, 2 do
  local s, untilMs = leases[i], tonumber(leases[i + 1])
  local h = get(s, 'o', 'held')
  local isDead = dead[h[1]]
  if isDead or untilMs < nowMs then
    nextFence(s)
    redis.call('ZREM', key('lease'), s)
    taken[#taken + 1] = s
    if not h[2] and (isDead or not wasAway) then countTry(s, 'the worker that had begun it ended') end
    giveBack(s, 0)
  end
end
for _, s in ipairs(redis.call('ZRANGEBYSCORE', key('parked'), '-inf', int(nowMs))) do
  redis.call('ZREM', key('parked'), s)
  wake(s, 0)
end
if A.maxTurns > 0 then
  redis.call('ZREMRANGEBYSCORE', key('turns'), '-inf', int(nowMs))
  local free = A.maxTurns - redis.call('ZCARD', key('turns'))
  for _, s in ipairs(free > 0 and redis.call('ZRANGE', key('waiting'), 0, free - 1) or {}) do
    redis.call('ZREM', key('waiting'), s)
    callIn(s)
  end
end
return { wakes, taken }
