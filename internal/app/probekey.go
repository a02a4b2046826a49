// SPDX-License-Identifier: Apache-2.0

package app

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math/big"
)

// forgottenKey returns a public key in OpenSSH's form, of which nobody has the private one:
// Azure makes no machine without a way to log in.
func forgottenKey() (string, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return "", fmt.Errorf("make a key: %w", err)
	}
	var wire []byte
	for _, part := range [][]byte{[]byte("ssh-rsa"), mpint(big.NewInt(int64(key.E))), mpint(key.N)} {
		wire = binary.BigEndian.AppendUint32(wire, uint32(len(part))) //nolint:gosec // some hundred bytes
		wire = append(wire, part...)
	}
	return "ssh-rsa " + base64.StdEncoding.EncodeToString(wire), nil
}

// mpint is a positive number as RFC 4251 writes it: its first bit is 0.
func mpint(n *big.Int) []byte {
	text := n.Bytes()
	if len(text) > 0 && text[0] >= 0x80 {
		text = append([]byte{0}, text...)
	}
	return text
}
