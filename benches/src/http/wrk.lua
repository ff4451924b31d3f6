-- The load: POST requests with varied identifiers, built before the first connection.
-- @BODIES@, @PATH@ and @KEY@ are filled in by requests.rs.

local requests = {}
local last = 0

function init(args)
   local headers = {
      ["Authorization"] = "Bearer @KEY@",
      ["Content-Type"] = "application/json",
   }
   for body in io.lines("@BODIES@") do
      requests[#requests + 1] = wrk.format("POST", "@PATH@", headers, body)
   end
end

function request()
   last = last % #requests + 1
   return requests[last]
end

-- One line that a program can read.
function done(summary, latency, _)
   local errors = summary.errors
   io.write(string.format(
      "figures %d %d %d %d %d\n",
      summary.requests,
      summary.duration,
      latency:percentile(50),
      latency:percentile(99),
      errors.connect + errors.read + errors.write + errors.status + errors.timeout
   ))
end
