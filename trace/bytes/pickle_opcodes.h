// The opcodes of the pickle machine, protocols 0 to 5, and their names.
#pragma once

#include <cstdint>
#include <string_view>

namespace memreplay {

// An opcode and its name.
struct PickleOpRow {
  uint8_t opcode;
  std::string_view name;
};

inline constexpr PickleOpRow kPickleOps[] = {
    // Opcodes that write builtin containers and scalars.
    {0x80, "PROTO"},
    {0x95, "FRAME"},
    {'.', "STOP"},
    {'(', "MARK"},
    {'0', "POP"},
    {'1', "POP_MARK"},
    {'2', "DUP"},
    {'N', "NONE"},
    {0x88, "NEWTRUE"},
    {0x89, "NEWFALSE"},
    {'J', "BININT"},
    {'K', "BININT1"},
    {'M', "BININT2"},
    {0x8a, "LONG1"},
    {0x8b, "LONG4"},
    {'G', "BINFLOAT"},
    {0x8c, "SHORT_BINUNICODE"},
    {'X', "BINUNICODE"},
    {0x8d, "BINUNICODE8"},
    {'C', "SHORT_BINBYTES"},
    {'B', "BINBYTES"},
    {0x8e, "BINBYTES8"},
    {0x96, "BYTEARRAY8"},
    {']', "EMPTY_LIST"},
    {'a', "APPEND"},
    {'e', "APPENDS"},
    {'l', "LIST"},
    {')', "EMPTY_TUPLE"},
    {'t', "TUPLE"},
    {0x85, "TUPLE1"},
    {0x86, "TUPLE2"},
    {0x87, "TUPLE3"},
    {'}', "EMPTY_DICT"},
    {'d', "DICT"},
    {'s', "SETITEM"},
    {'u', "SETITEMS"},
    {0x8f, "EMPTY_SET"},
    {0x90, "ADDITEMS"},
    {0x91, "FROZENSET"},
    {0x94, "MEMOIZE"},
    {'q', "BINPUT"},
    {'r', "LONG_BINPUT"},
    {'h', "BINGET"},
    {'j', "LONG_BINGET"},
    // The reader rejects these: they name or call code, or exist only in protocols 0 and 1.
    {'F', "FLOAT"},
    {'I', "INT"},
    {'L', "LONG"},
    {'S', "STRING"},
    {'T', "BINSTRING"},
    {'U', "SHORT_BINSTRING"},
    {'V', "UNICODE"},
    {'g', "GET"},
    {'p', "PUT"},
    {'P', "PERSID"},
    {'Q', "BINPERSID"},
    {'R', "REDUCE"},
    {'b', "BUILD"},
    {'c', "GLOBAL"},
    {'i', "INST"},
    {'o', "OBJ"},
    {0x81, "NEWOBJ"},
    {0x82, "EXT1"},
    {0x83, "EXT2"},
    {0x84, "EXT4"},
    {0x92, "NEWOBJ_EX"},
    {0x93, "STACK_GLOBAL"},
    {0x97, "NEXT_BUFFER"},
    {0x98, "READONLY_BUFFER"}};

// Returns the opcode with this name, for `case PickleOp("STOP"):`.
consteval uint8_t PickleOp(std::string_view name) {
  const PickleOpRow* row = kPickleOps;
  while (row->name != name) ++row;  // does not compile if there is none
  return row->opcode;
}

// Returns the name of any opcode, including rejected ones; empty if there is no such opcode.
constexpr std::string_view PickleOpName(uint8_t opcode) {
  for (const PickleOpRow& row : kPickleOps) {
    if (row.opcode == opcode) return row.name;
  }
  return "";
}

}  // namespace memreplay
