"""The hardware on which a claim was made, as far as names of GPUs tell."""

# By key of a claim: what it is called, and a pattern for the names of this machine's GPUs; "": there is none.
HARDWARE = {
    "cpu": ("a CPU", ""),
    "gpu": ("a GPU", "."),
    "nvidia": ("an NVIDIA GPU", "^(?!.*(Apple|AMD|Instinct|Radeon))."),
    "h100": ("an H100", r"\bH100"),
    "h200": ("an H200", r"\bH200"),
    "a100": ("an A100", r"\bA100(?!\d)"),
    "rtx4090": ("an RTX 4090", r"\b4090"),
    "consumer-gpu": ("a consumer GPU", r"GeForce|RTX [2-5]0[5-9]0"),
    "amd": ("an AMD GPU", "AMD|Instinct|Radeon"),
    "apple": ("Apple silicon", "Apple"),
}
