// The functions that exports.cc calls, in the form that emscripten's linker takes.
mergeInto(LibraryManager.library, {
  memreplay_progress: function(activity, done, total) { Module["progress"](UTF8ToString(activity), done, total); },
  memreplay_out_of_memory: function() { throw new Error("out of memory"); },
});
