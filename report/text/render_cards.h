// The table of GPUs (hardware/cards.h).
#ifndef MEMREPLAY_REPORT_TEXT_RENDER_CARDS_H_
#define MEMREPLAY_REPORT_TEXT_RENDER_CARDS_H_

#include <string>

namespace memreplay {

// One line a GPU, by group: its name, its memory on Linux and on Windows, capability,
// multiprocessors and where the memory's figures are from.
std::string RenderCards();

// A JSON array of all that the table has.
std::string CardsJson();

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_TEXT_RENDER_CARDS_H_
