// SPDX-License-Identifier: Apache-2.0

// Package probe finds out how an Azure answers the questions of package behaviour: it makes a
// resource group, asks by writing and looking, and takes the group away again. It speaks to
// Azure by the Azure interface alone, so that the order of its calls, its verdicts and its
// report are tested without one.
package probe
