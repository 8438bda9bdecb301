"""int8 layers against float64, on every instruction set; bfloat16"""
