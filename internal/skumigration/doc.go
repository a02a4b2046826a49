// SPDX-License-Identifier: Apache-2.0

// Package skumigration carries out what package phase decides, once, when a process starts to lead.
// Until it has ended, nothing else in Weir writes to Azure.
package skumigration
