// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/words"
)

// Limits of texts, in bytes.
const (
	maxMessage = words.MaxMessage
	maxCode    = words.MaxCode
)

func sentence(text string, limit int) string { return words.Sentence(text, limit) }

func faultText(f *fault.Fault, limit int) string { return words.OfFault(f, limit) }

func count(n int, thing string) string { return words.Count(n, thing) }
