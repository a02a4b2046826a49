// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"errors"
	"io"

	yamlnode "go.yaml.in/yaml/v3"
)

// ErrMore is that of a document with text after its end, such as a second JSON object, which nothing would read.
var ErrMore = errors.New("text follows the end of the document: a line --- begins another one, also in JSON")

// Alone returns ErrMore if a YAML document has text after its end. What else is wrong with it is not looked at.
func Alone(document []byte) error {
	var node yamlnode.Node
	reads := yamlnode.NewDecoder(bytes.NewReader(document))
	if reads.Decode(&node) != nil || errors.Is(reads.Decode(&node), io.EOF) {
		return nil
	}
	return ErrMore
}
