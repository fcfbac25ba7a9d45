"""Styles that model families were trained on; their templates announce the tools."""

from toolgram.styles.native.cohere import COMMAND_A_2, COMMAND_R7B
from toolgram.styles.native.command_r import COMMAND_R
from toolgram.styles.native.deepseek import DEEPSEEK_R1, DEEPSEEK_V3_1
from toolgram.styles.native.deepseek_dsml import DEEPSEEK_V3_2, DEEPSEEK_V4
from toolgram.styles.native.function_gemma import FUNCTION_GEMMA
from toolgram.styles.native.functionary_v3 import FUNCTIONARY_V3
from toolgram.styles.native.gemma4 import GEMMA_4
from toolgram.styles.native.glm import GLM_4_5, GLM_4_7
from toolgram.styles.native.harmony import HARMONY
from toolgram.styles.native.hermes import HERMES
from toolgram.styles.native.kimi import KIMI_K2, KIMI_K3
from toolgram.styles.native.lists import (
    APRIEL,
    FIREFUNCTION,
    FUNCTOOLS,
    GIGACHAT,
    GRANITE_3_3,
    HUNYUAN,
    MINIMAX_M1,
    PHI_4_MINI,
    XLAM,
)
from toolgram.styles.native.llama3 import LLAMA_3
from toolgram.styles.native.minimax_m3 import MINIMAX_M3
from toolgram.styles.native.mistral import MINISTRAL, MISTRAL_NEMO, MISTRAL_SMALL
from toolgram.styles.native.pythonic import LFM2, LFM2_5, PYTHONIC
from toolgram.styles.native.qwen_xml import QWEN_XML

NATIVE = (
    HERMES,
    QWEN_XML,
    GLM_4_7,
    GLM_4_5,
    HARMONY,
    GEMMA_4,
    FUNCTION_GEMMA,
    LFM2,
    LFM2_5,
    DEEPSEEK_R1,
    DEEPSEEK_V3_1,
    DEEPSEEK_V3_2,
    DEEPSEEK_V4,
    KIMI_K2,
    KIMI_K3,
    GRANITE_3_3,
    MISTRAL_NEMO,
    MISTRAL_SMALL,
    MINISTRAL,
    FUNCTIONARY_V3,
    COMMAND_R,
    COMMAND_R7B,
    COMMAND_A_2,
    FUNCTOOLS,
    FIREFUNCTION,
    APRIEL,
    HUNYUAN,
    PHI_4_MINI,
    XLAM,
    LLAMA_3,
    PYTHONIC,
    MINIMAX_M1,
    MINIMAX_M3,
    GIGACHAT,
)
