# 77M parameters, 16 x 1024 tokens: a nanoGPT config file.
n_layer = 12
n_head = 12
n_embd = 576
block_size = 1024
batch_size = 16
gradient_accumulation_steps = 2
dtype = 'float16'
compile = False
