#!lua flags=allow-oom
-- Takes a place in all of some limits, or in none: within any window of `perMs` there are at most `count` calls, exactly. A
-- call that costs more than all there is counts for all there is.
-- A: limits [{window, parked, count, perMs, cost}], the first two being the rest of their keys' names
-- Returns {0} | {ms to wait, which limit keeps waiting longest (from 1)}
local longest, at = 0, 0
local function wait(ms, i)
  if ms > longest then longest, at = ms, i end
end
for i, l in ipairs(A.limits) do
  local window, perUs = key('limit', l.window), l.perMs * 1000
  redis.call('ZREMRANGEBYSCORE', window, '-inf', int(nowUs - perUs))
  -- What lies further ahead than a window was noted by a clock that has been put back.
  redis.call('ZREMRANGEBYSCORE', window, '(' .. int(nowUs + perUs), '+inf')
  l.taken = redis.call('ZCARD', window)
  l.cost = math.min(l.cost, l.count)
  local over = l.taken + l.cost - l.count
  if over > 0 then
    local last = redis.call('ZRANGE', window, over - 1, over - 1, 'WITHSCORES')[2]
    wait(math.max(1, math.ceil((tonumber(last) + perUs - nowUs) / 1000)), i)
  end
  wait(redis.call('PTTL', key('limitParked', l.parked)), i)
end
if longest > 0 then return { int(longest), at } end
for _, l in ipairs(A.limits) do
  local window = key('limit', l.window)
  for n = 1, l.cost do redis.call('ZADD', window, int(nowUs), int(nowUs) .. ' ' .. (l.taken + n)) end
  redis.call('PEXPIRE', window, int(l.perMs))
end
return { 0 }
