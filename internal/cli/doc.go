// SPDX-License-Identifier: Apache-2.0

// Package cli connects commands to the API server and the leader, with the caller's permissions, and has the commands
// that need little more: pause, resume, retry, and those for retained addresses.
package cli
