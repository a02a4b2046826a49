// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math/big"
)

// NewDiscardedKey returns an OpenSSH public key and discards the private one: Azure creates no VM without a
// login.
func NewDiscardedKey() (string, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return "", fmt.Errorf("make a key: %w", err)
	}
	var wire []byte
	for _, part := range [][]byte{[]byte("ssh-rsa"), encodeMPInt(big.NewInt(int64(key.E))), encodeMPInt(key.N)} {
		wire = binary.BigEndian.AppendUint32(wire, uint32(len(part))) //nolint:gosec // some hundred bytes
		wire = append(wire, part...)
	}
	return "ssh-rsa " + base64.StdEncoding.EncodeToString(wire), nil
}

// encodeMPInt encodes a positive number as in RFC 4251: the first bit is 0.
func encodeMPInt(n *big.Int) []byte {
	text := n.Bytes()
	if len(text) > 0 && text[0] >= 0x80 {
		text = append([]byte{0}, text...)
	}
	return text
}
