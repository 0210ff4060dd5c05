#!lua flags=allow-oom
-- Takes, prolongs or gives back the ownership of a channel account.
-- A: account, owner, leaseMs (0: give back)
-- Returns {fence} or {} while another process has it
local k = key('accountOwner', A.account)
local h = redis.call('HMGET', k, 'owner', 'until', 'fence')
local isOurs = h[1] == A.owner
if h[1] and not isOurs and tonumber(h[2]) >= nowMs then return {} end
if A.leaseMs == 0 then
  if isOurs then redis.call('HDEL', k, 'owner', 'until') end
  return {}
end
local fence = isOurs and tonumber(h[2]) >= nowMs and tonumber(h[3]) or math.max((tonumber(h[3]) or 0) + 1, nowUs)
redis.call('HSET', k, 'owner', A.owner, 'until', int(nowMs + A.leaseMs), 'fence', int(fence))
return { int(fence) }
