#!lua flags=allow-oom
-- Reads stored answers.
-- A: session, waits (ids)
-- Returns {id, payload, id, payload …}
local out = {}
for _, id in ipairs(A.waits) do
  local payload = redis.call('GET', key('answer', A.session .. ':' .. id))
  if payload then
    out[#out + 1] = id
    out[#out + 1] = payload
  end
end
return out
