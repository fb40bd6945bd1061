# 29.94M parameters, 16 x 512 tokens: a nanoGPT config file.
n_layer = 6
n_head = 6
n_embd = 384
block_size = 512
batch_size = 16
gradient_accumulation_steps = 4
dtype = 'float16'
