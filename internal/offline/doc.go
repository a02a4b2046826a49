// SPDX-License-Identifier: Apache-2.0

// Package offline runs the controllers without an API server, for plans: objects come from files or
// are read once, and writes change them in memory.
package offline
