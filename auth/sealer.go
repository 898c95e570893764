package auth

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
)

// Sealer encrypts and authenticates texts for cookies. It is safe for concurrent use.
type Sealer struct{ aead cipher.AEAD }

// NewSealer returns the sealer of a deployment, whose secret its replicas share. use keeps its
// texts, and its key, apart from those of all other uses of the secret.
func NewSealer(secret []byte, use string) (*Sealer, error) {
	if err := checkSecret(secret); err != nil {
		return nil, err
	}
	key, err := hkdf.Key(sha256.New, secret, nil, use, 32)
	if err != nil {
		return nil, fmt.Errorf("derive the key of %s: %w", use, err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("derive the key of %s: %w", use, err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, fmt.Errorf("derive the key of %s: %w", use, err)
	}
	return &Sealer{aead}, nil
}

// Seal returns a text that [Sealer.Open] turns into plain again.
func (s *Sealer) Seal(plain []byte) string {
	return base64.RawURLEncoding.EncodeToString(s.aead.Seal(nil, nil, plain, nil))
}

// Open returns what was sealed, and whether the text is one of ours.
func (s *Sealer) Open(text string) (plain []byte, ours bool) {
	if len(text) > maxSealed {
		return nil, false
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return nil, false
	}
	plain, err = s.aead.Open(nil, nil, raw, nil)
	return plain, err == nil
}
