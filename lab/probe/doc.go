// SPDX-License-Identifier: Apache-2.0

// Package probe measures how an Azure answers the questions of package behavior. It creates a
// resource group, writes and reads resources, and deletes the group, using only the Azure
// interface.
package probe
