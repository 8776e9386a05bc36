"""Small ONNX networks with the exact interfaces of the learned models and seeded random weights.

They swap nothing: tests use them to see that every number reaches the network as it was trained to get it, and that
every output comes back right. Built when asked for, into a folder of the test session; nothing binary is in git.
"""
