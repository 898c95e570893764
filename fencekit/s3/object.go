package s3

import (
	"context"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
)

// object has the fence in its first line.
type object struct {
	fence uint64
	value string
	etag  *string // nil if it does not exist
}

func get(ctx context.Context, db *s3.Client, bucket, key string) (object, error) {
	answer, err := db.GetObject(ctx, &s3.GetObjectInput{Bucket: &bucket, Key: &key})
	if missing := new(types.NoSuchKey); errors.As(err, &missing) {
		return object{}, nil
	}
	if err != nil {
		return object{}, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return object{}, err
	}
	first, value, _ := strings.Cut(string(body), "\n")
	fence, err := strconv.ParseUint(first, 10, 64)
	return object{fence, value, answer.ETag}, err
}

// isConflict reports whether the object changed before a put (412), or while it ran (409).
func isConflict(err error) bool {
	failed := smithy.APIError(nil)
	return errors.As(err, &failed) && (failed.ErrorCode() == "PreconditionFailed" ||
		failed.ErrorCode() == "ConditionalRequestConflict")
}
