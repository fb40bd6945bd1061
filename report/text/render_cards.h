// Renders the table of GPUs (hardware/cards.h).
#ifndef MEMREPLAY_REPORT_TEXT_RENDER_CARDS_H_
#define MEMREPLAY_REPORT_TEXT_RENDER_CARDS_H_

#include <string>

namespace memreplay {

// Returns one line for each GPU, by group: its name, its memory on Linux and on Windows,
// capability, multiprocessors and the source of the memory figures.
std::string RenderCards();

// Returns a JSON array of everything in the table.
std::string CardsJson();

}  // namespace memreplay

#endif  // MEMREPLAY_REPORT_TEXT_RENDER_CARDS_H_
