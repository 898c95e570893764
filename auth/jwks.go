package auth

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/MicahParks/jwkset"
	"github.com/golang-jwt/jwt/v5"
)

const (
	// Keys below this size are not to be used with RS256 (RFC 7518 section
	// 3.3); above the other one a verification takes absurdly long.
	minRSABits, maxRSABits = 2048, 8192

	maxKeyIDLength = 256 // bytes of a kid
)

// algEd25519 is RFC 9864's name for the EdDSA signatures that Ed25519 keys make.
const algEd25519 = "Ed25519"

func init() { //nolint:gochecknoinits // the library has no other way to add a name
	jwt.RegisterSigningMethod(algEd25519, func() jwt.SigningMethod { return jwt.SigningMethodEdDSA })
}

// keyID finds keys. The algorithm is part of it, so that a token can only
// ever meet a key that was published for the algorithm its header names. An
// empty kid stands for all keys of its algorithm.
type keyID struct{ alg, kid string }

// key is one verification key: what a signing method of the jwt library takes.
type key struct {
	id       keyID
	material any // []byte, *rsa.PublicKey, *ecdsa.PublicKey or ed25519.PublicKey

	// voucher names the key in a session: its algorithm, a hash of the key itself, and its kid.
	voucher string

	// used ends when the key leaves the key set. Whatever was verified with it is void from then on.
	used   context.Context
	retire context.CancelFunc
}

func newKey(id keyID, material any) (*key, error) {
	text, isSecret := material.([]byte)
	if !isSecret {
		var err error
		if text, err = x509.MarshalPKIXPublicKey(material); err != nil {
			return nil, err
		}
	}
	sum := sha256.Sum256(append([]byte("fencepost key of a session\n"), text...))
	k := &key{
		id: id, material: material,
		voucher: id.alg + ":" + base64.RawURLEncoding.EncodeToString(sum[:16]) + ":" + id.kid,
	}
	k.used, k.retire = context.WithCancel(context.Background())
	return k, nil
}

// validity is that of the tokens that the key verified.
func (k *key) validity() context.Context {
	if k.used.Err() != nil {
		return nil
	}
	return k.used
}

func (k *key) equal(other *key) bool {
	public, ok := k.material.(interface{ Equal(crypto.PublicKey) bool })
	return ok && k.id == other.id && public.Equal(other.material)
}

// parseKeySet reads a JWK Set. As RFC 7517 section 5 asks, keys that cannot be
// used are left out and do not spoil the others; skipped says why for each. A
// document that is no JWK Set is an error.
func parseKeySet(document []byte) (keys []*key, skipped []error, err error) {
	var set struct {
		Keys *[]json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(withoutMark(document), &set); err != nil || set.Keys == nil {
		return nil, nil, errors.New("not a JWK Set: no JSON object with a list \"keys\"")
	}
	for i, raw := range *set.Keys {
		k, err := parseKey(raw)
		if err == nil && slices.ContainsFunc(keys, k.equal) {
			err = fmt.Errorf("%s key %q occurs twice", k.id.alg, k.id.kid)
		}
		if err != nil {
			skipped = append(skipped, fmt.Errorf("key %d: %w", i+1, err))
			continue
		}
		keys = append(keys, k)
	}
	return keys, skipped, nil
}

func parseKey(raw json.RawMessage) (*key, error) {
	var m jwkset.JWKMarshal
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, errors.New("not a JWK")
	}
	if m.KTY == jwkset.KtyOct {
		return nil, errors.New("a symmetric key is never taken from a key set")
	}
	// We trust the set itself, so certificates add nothing; left in, a
	// thumbprint in an unusual encoding would cost us the key.
	m.X5C, m.X5T, m.X5TS256, m.X5U = nil, "", "", ""
	if m.ALG == algEd25519 {
		m.ALG = jwkset.AlgEdDSA // the only name that jwkset knows
	}
	jwk, err := jwkset.NewJWKFromMarshal(m, jwkset.JWKMarshalOptions{}, jwkset.JWKValidateOptions{})
	if err != nil {
		return nil, err
	}
	if err := checkPurpose(m); err != nil {
		return nil, err
	}
	alg, err := algorithmOf(jwk.Key())
	if err != nil {
		return nil, err
	}
	if m.ALG != "" && m.ALG.String() != alg {
		return nil, fmt.Errorf("alg %.20q is not supported with this key", m.ALG)
	}
	return newKey(keyID{alg, m.KID}, jwk.Key())
}

func checkPurpose(m jwkset.JWKMarshal) error {
	if len(m.KID) > maxKeyIDLength {
		return fmt.Errorf("kid is longer than %d bytes", maxKeyIDLength)
	}
	if m.USE != "" && m.USE != jwkset.UseSig {
		return errors.New("use is not \"sig\"")
	}
	if len(m.KEYOPS) > 0 && !slices.Contains(m.KEYOPS, jwkset.KeyOpsVerify) {
		return errors.New("key_ops does not have \"verify\"")
	}
	return nil
}

// algorithmOf returns the one algorithm that a key may be used with.
func algorithmOf(material any) (string, error) {
	switch k := material.(type) {
	case *rsa.PublicKey:
		if bits := k.N.BitLen(); bits < minRSABits || bits > maxRSABits {
			return "", fmt.Errorf("an RSA key of %d bits, not %d to %d", bits, minRSABits, maxRSABits)
		}
		return jwt.SigningMethodRS256.Alg(), nil
	case *ecdsa.PublicKey:
		if k.Curve != elliptic.P256() {
			return "", errors.New("an elliptic curve other than P-256")
		}
		return jwt.SigningMethodES256.Alg(), nil
	case ed25519.PublicKey:
		return jwt.SigningMethodEdDSA.Alg(), nil
	}
	return "", errors.New("a key type without a supported algorithm")
}

// indexKeys makes keys findable by kid, and all keys of an algorithm under no kid.
func indexKeys(keys []*key) map[keyID][]*key {
	index := map[keyID][]*key{}
	for _, k := range keys {
		index[k.id] = append(index[k.id], k)
		if anyKid := (keyID{alg: k.id.alg}); k.id != anyKid {
			index[anyKid] = append(index[anyKid], k)
		}
	}
	return index
}
