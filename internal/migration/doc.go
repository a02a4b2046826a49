// SPDX-License-Identifier: Apache-2.0

// Package migration carries out what package migrate decides, once, when a process starts to lead.
// Until it has ended, nothing else in Weir writes to Azure.
package migration
