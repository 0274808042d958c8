// Snug trains neural networks inside the memory you give it. This header is the whole API.
#pragma once

#include <snug/error.h>
#include <snug/memory.h>
#include <snug/model.h>
#include <snug/recipe.h>
#include <snug/run.h>
#include <snug/trainer.h>
