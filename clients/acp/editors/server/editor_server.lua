-- Neovim's diagnostics, selection and open files as an MCP server, for agents of the Agent Client Protocol with `mcpCapabilities.acp`.
--
-- An ACP plugin adds `server()` to `mcpServers` of its sessions, and answers each request `mcp/message` with `answer(params)`: the
-- result of the response, in which a failure is an `error`. docs/acp-extensions.md has the contract; tools.json, beside this file, the tools.

local M = {}

local HERE = debug.getinfo(1, "S").source:sub(2):match("^(.*)/") or "."

local SEVERITY = { "error", "warning", "information", "hint" }

--- The entry for `mcpServers`. Claude Code keeps the name `ide` for itself, and hides the tools of such a server.
function M.server()
  return { type = "acp", name = "editor", serverId = "editor" }
end

-- The buffers of files that are listed.
local function buffers()
  return vim.tbl_filter(function(buffer)
    return vim.bo[buffer].buflisted and vim.bo[buffer].buftype == "" and vim.api.nvim_buf_get_name(buffer) ~= ""
  end, vim.api.nvim_list_bufs())
end

local function path_of(buffer)
  return vim.fn.fnamemodify(vim.api.nvim_buf_get_name(buffer), ":p")
end

-- A JSON list, also if it is empty. `vim.json` would write an empty table as an object.
local function list(items)
  return next(items) == nil and vim.fn.json_decode("[]") or items
end

local tools = {}

function tools.get_diagnostics(arguments)
  local wanted = arguments.path and vim.fn.resolve(arguments.path)
  local found = {}
  for _, buffer in ipairs(buffers()) do
    local path = path_of(buffer)
    if not wanted or vim.fn.resolve(path) == wanted then
      for _, diagnostic in ipairs(vim.diagnostic.get(buffer)) do
        table.insert(found, {
          path = path,
          line = diagnostic.lnum + 1,
          column = diagnostic.col + 1,
          severity = SEVERITY[diagnostic.severity],
          source = diagnostic.source,
          message = diagnostic.message,
        })
      end
    end
  end
  return { diagnostics = list(found) }
end

-- The window that the user looks at: a chat is no file.
local function window()
  local current = vim.api.nvim_get_current_win()
  local windows = vim.list_extend({ current }, vim.api.nvim_list_wins())
  for _, candidate in ipairs(windows) do
    if vim.tbl_contains(buffers(), vim.api.nvim_win_get_buf(candidate)) then
      return candidate
    end
  end
end

-- The selected text, as lines. Of a block, the whole lines.
local function region(from, to, mode)
  local lines = vim.api.nvim_buf_get_lines(0, from[2] - 1, to[2], false)
  if mode == "v" and #lines > 0 then
    lines[#lines] = lines[#lines]:sub(1, to[3] + vim.str_utf_end(lines[#lines], math.min(to[3], #lines[#lines])))
    lines[1] = lines[1]:sub(from[3])
  end
  return lines
end

function tools.get_selection()
  local shown = window()
  if not shown then
    return vim.empty_dict()
  end
  return vim.api.nvim_win_call(shown, function()
    local told = { path = path_of(0), line = vim.fn.line(".") }
    local from, to = vim.fn.getpos("'<"), vim.fn.getpos("'>")
    local mode = vim.fn.mode()
    if mode == "v" or mode == "V" or mode == "\22" then
      from, to = vim.fn.getpos("v"), vim.fn.getpos(".")
    else
      mode = vim.fn.visualmode()
    end
    if from[2] > 0 and to[2] > 0 and mode ~= "" then
      if from[2] > to[2] or (from[2] == to[2] and from[3] > to[3]) then
        from, to = to, from
      end
      told.startLine, told.endLine = from[2], to[2]
      told.text = table.concat(region(from, to, mode), "\n")
    end
    return told
  end)
end

function tools.get_open_files()
  local shown = window()
  local active = shown and vim.api.nvim_win_get_buf(shown)
  local files = vim.tbl_map(function(buffer)
    return {
      path = path_of(buffer),
      isActive = buffer == active,
      isModified = vim.bo[buffer].modified,
      language = vim.bo[buffer].filetype,
    }
  end, buffers())
  return { files = list(files) }
end

local methods = {}

methods["server/discover"] = function()
  return {
    resultType = "complete",
    supportedVersions = { "2026-07-28" },
    capabilities = { tools = vim.empty_dict() },
    serverInfo = { name = "editor", version = table.concat({ vim.version().major, vim.version().minor, vim.version().patch }, ".") },
    ttlMs = 0,
    cacheScope = "private",
  }
end

methods["tools/list"] = function()
  local text = table.concat(vim.fn.readfile(HERE .. "/tools.json"), "\n")
  -- With the option, empty objects stay objects.
  return { resultType = "complete", tools = vim.json.decode(text), ttlMs = 0, cacheScope = "private" }
end

methods["tools/call"] = function(params)
  local tool = tools[params.name]
  if not tool then
    return nil, { code = -32602, message = "there is no tool " .. tostring(params.name) }
  end
  local is_done, told = pcall(tool, params.arguments or {})
  if not is_done then
    return { resultType = "complete", isError = true, content = { { type = "text", text = tostring(told) } } }
  end
  return {
    resultType = "complete",
    structuredContent = told,
    content = { { type = "text", text = vim.json.encode(told) } },
  }
end

--- The result of the response to a request `mcp/message` with these params.
function M.answer(params)
  local method = methods[params.method]
  if not method then
    return { error = { code = -32601, message = "there is no method " .. tostring(params.method) } }
  end
  local result, failure = method(params.params or {})
  if failure then
    return { error = failure }
  end
  return { result = result }
end

return M
