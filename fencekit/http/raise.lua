-- The store of the guard in Redis and Valkey: EVAL script 1 fence:{RESOURCE} FENCE
local known = tonumber(redis.call('GET', KEYS[1]) or 0)
local fence = tonumber(ARGV[1])
if fence > known then
  redis.call('SET', KEYS[1], ARGV[1])
  return fence
end
return known
