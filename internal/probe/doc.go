// SPDX-License-Identifier: Apache-2.0

// Package probe measures how an Azure answers the questions of package behaviour: it creates a
// resource group, writes and reads resources, and deletes the group. It uses only the Azure
// interface, so tests need no Azure.
package probe
