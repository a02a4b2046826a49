// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"crypto/rsa"
	"encoding/base64"
	"encoding/binary"
	"math/big"
	"strings"
	"testing"
)

// Each key is new and valid for OpenSSH.
func TestDiscardedKey(t *testing.T) {
	text, err := NewDiscardedKey()
	if err != nil {
		t.Fatal(err)
	}
	kind, encoded, _ := strings.Cut(text, " ")
	wire, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || kind != "ssh-rsa" {
		t.Fatal(text, err)
	}
	var parts [][]byte
	for len(wire) > 0 {
		n := binary.BigEndian.Uint32(wire)
		parts, wire = append(parts, wire[4:4+n]), wire[4+n:]
	}
	key := rsa.PublicKey{N: new(big.Int).SetBytes(parts[2]), E: int(new(big.Int).SetBytes(parts[1]).Int64())}
	if string(parts[0]) != "ssh-rsa" || key.E != 65537 || key.N.BitLen() != 2048 || parts[2][0] != 0 {
		t.Errorf("it is %q, %d, %d bits", parts[0], key.E, key.N.BitLen())
	}
	if second, _ := NewDiscardedKey(); second == text {
		t.Error("the same key again")
	}
}
