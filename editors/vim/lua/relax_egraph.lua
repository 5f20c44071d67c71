-- Starts `relax-egraph lsp` for rule files: require('relax_egraph').setup() in init.lua.

local M = {}

-- options.cmd is the command, such as { '/path/to/.venv/bin/relax-egraph', 'lsp' }
function M.setup(options)
  local cmd = (options or {}).cmd or { 'relax-egraph', 'lsp' }
  vim.api.nvim_create_autocmd('FileType', {
    pattern = 'egg',
    callback = function(event)
      local folder = vim.fn.getcwd()
      if vim.lsp.start then
        vim.lsp.start({ name = 'relax-egraph', cmd = cmd, root_dir = folder })
      else -- before Neovim 0.8
        M.client = M.client or vim.lsp.start_client({ name = 'relax-egraph', cmd = cmd, root_dir = folder })
        vim.lsp.buf_attach_client(event.buf, M.client)
      end
    end,
  })
  -- vim.lsp.codelens.run() on the line of a rule runs its lens
  vim.api.nvim_create_autocmd({ 'BufEnter', 'InsertLeave' }, {
    pattern = '*.egg',
    callback = function() vim.lsp.codelens.refresh() end,
  })
end

return M
