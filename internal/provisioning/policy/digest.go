// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// Digest returns a digest of JSON-encodable values.
func Digest(values ...any) string {
	sum := sha256.New()
	for _, v := range values {
		_ = json.NewEncoder(sum).Encode(v)
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}
