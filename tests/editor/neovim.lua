-- Types a campaign in headless Neovim and checks what the language server shows. neovim.sh starts it in a folder with a list.
local failed = false

local function check(name, passed, seen)
  if passed then
    io.stdout:write('ok  ' .. name .. '\n')
  else
    failed = true
    io.stdout:write('FAILED  ' .. name .. ': ' .. vim.inspect(seen) .. '\n')
  end
end

local function finish()
  vim.cmd(failed and 'cquit 1' or 'qall!')
end

local function run()
  vim.cmd('edit sale.yaml')
  -- The text is typed with its own indentation.
  vim.bo.autoindent, vim.bo.indentexpr, vim.bo.indentkeys = false, '', ''
  local buffer = vim.api.nvim_get_current_buf()
  local ended
  local client = vim.lsp.start_client({
    name = 'campaign',
    cmd = { vim.env.PROGRAM, 'lsp' },
    root_dir = vim.fn.getcwd(),
    on_exit = function(code) ended = code end,
  })
  vim.lsp.buf_attach_client(buffer, client)
  local started = vim.wait(10000, function()
    local running = vim.lsp.get_client_by_id(client)
    return running ~= nil and running.initialized == true
  end, 10)
  check('the server starts', started, client)
  if not started then return end

  local function type_keys(keys)
    vim.api.nvim_feedkeys(vim.api.nvim_replace_termcodes(keys, true, false, true), 'xt', false)
  end
  local function ask(method)
    local answers = vim.lsp.buf_request_sync(buffer, method, vim.lsp.util.make_position_params(0, 'utf-16'), 10000) or {}
    return answers[client] and answers[client].result
  end
  -- The cursor is on the last typed character, and the next one is typed after it.
  local function offered()
    local line, column = unpack(vim.api.nvim_win_get_cursor(0))
    local length = #vim.api.nvim_get_current_line()
    local params = vim.lsp.util.make_position_params(0, 'utf-16')
    params.position = { line = line - 1, character = length == 0 and 0 or column + 1 }
    local answers = vim.lsp.buf_request_sync(buffer, 'textDocument/completion', params, 10000) or {}
    return answers[client] and answers[client].result and answers[client].result.items or {}
  end
  local function choose(items, label)
    for _, item in ipairs(items) do
      if item.label == label then
        vim.lsp.util.apply_text_edits({ item.textEdit }, buffer, 'utf-16')
        return true
      end
    end
    return false
  end
  local function labels(items)
    return vim.tbl_map(function(item) return item.label end, items)
  end
  local function errors()
    return vim.diagnostic.get(buffer, { severity = vim.diagnostic.severity.ERROR })
  end
  local function wait_for(condition)
    return vim.wait(15000, condition, 10)
  end

  local items = offered()
  check('an empty file offers the keys of a campaign', choose(items, 'recipients'), labels(items))
  check('the chosen key is inserted', vim.api.nvim_get_current_line() == 'recipients:', vim.api.nvim_get_current_line())

  type_keys('o  fle: list.csv<CR>channels:<CR>  - sms:<CR>      signature: Shop<CR>      message: "Hi"<Esc>')
  local shown = wait_for(function()
    for _, found in ipairs(errors()) do
      if found.lnum == 1 and found.message:find('did you mean `file`', 1, true) then return true end
    end
    return false
  end)
  check('a misspelt key is shown while typing', shown, errors())

  local place = { textDocument = vim.lsp.util.make_text_document_params(buffer), context = { diagnostics = {} } }
  place.range = { start = { line = 1, character = 0 }, ['end'] = { line = 1, character = 5 } }
  local answers = vim.lsp.buf_request_sync(buffer, 'textDocument/codeAction', place, 10000) or {}
  local actions = answers[client] and answers[client].result or {}
  check('a code action is offered', #actions == 1 and actions[1].edit ~= nil, actions)
  if #actions == 1 then vim.lsp.util.apply_workspace_edit(actions[1].edit, 'utf-16') end
  local second = vim.api.nvim_buf_get_lines(buffer, 1, 2, false)[1]
  check('the code action corrects the key', second == '  file: list.csv', second)
  check('the finding disappears with the mistake', wait_for(function() return #errors() == 0 end), errors())

  type_keys('G$i {{ <Esc>')
  items = offered()
  check('columns of the list are offered in a template', choose(items, 'plan'), labels(items))
  type_keys('G$i }}<Esc>')
  local line = vim.api.nvim_buf_get_lines(buffer, -2, -1, false)[1]
  check('the chosen column is inserted', line == '      message: "Hi {{ plan }}"', line)
  check('the campaign has no mistakes', wait_for(function() return #errors() == 0 end), errors())

  vim.fn.search('plan', 'bc')
  local hover = ask('textDocument/hover')
  local text = hover and hover.contents.value or ''
  check('a column is explained with samples', text:find('`gold`, `basic`', 1, true) ~= nil, hover)

  type_keys('G$i {{ plam }}<Esc>')
  shown = wait_for(function()
    return #errors() == 1 and errors()[1].code == 'unknown-variable'
  end)
  check('an unknown column is shown', shown, errors())

  vim.fn.cursor(2, 12)
  place = ask('textDocument/definition')
  check('the definition of the list is its file', place ~= nil and place.uri:sub(-9) == '/list.csv', place)

  vim.lsp.stop_client(client)
  wait_for(function() return ended ~= nil end)
  check('the server ends with 0', ended == 0, ended)
end

local passed, why = pcall(run)
check('the script runs to its end', passed, why)
finish()
