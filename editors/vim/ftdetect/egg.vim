autocmd BufRead,BufNewFile *.egg setfiletype egg
